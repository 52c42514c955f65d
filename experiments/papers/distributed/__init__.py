"""Tables and figures of Bagdasaryan et al. 2022 on distributed heat maps, a command each."""
