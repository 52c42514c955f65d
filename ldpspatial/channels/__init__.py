"""What a report says of a position: the linear operators between maps and reports."""
