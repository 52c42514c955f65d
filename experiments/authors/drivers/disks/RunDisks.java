import cn.edu.dll.struct.point.TwoDimensionalIntegerPoint;
import ecnu.dll.construction.schemes.new_scheme.discretization.AbstractDiscretizedScheme;
import ecnu.dll.construction.schemes.new_scheme.discretization.DiscretizedDiskNonShrinkScheme;
import ecnu.dll.construction.schemes.new_scheme.discretization.DiscretizedDiskScheme;
import ecnu.dll.construction.schemes.new_scheme.discretization.DiscretizedHybridUniformExponentialScheme;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** DAM, DAM-NS and HUEM as their authors published them: cells of people in, a map out. */
public final class RunDisks {
    private static final double SMOOTHING = 0.0; // k, as in their program for Figure 9

    /**
     * Arguments: mechanism, epsilon, cells a side, a radius in cells (for HUEM: the others have their
     * own), a file with a cell a line, the file to write.
     */
    public static void main(String[] words) throws IOException {
        double epsilon = Double.parseDouble(words[1]);
        double side = Double.parseDouble(words[2]);
        AbstractDiscretizedScheme scheme = switch (words[0]) {
            case "dam" -> new DiscretizedDiskScheme(epsilon, 1.0, side, SMOOTHING, 0.0, 0.0);
            case "dam-ns" -> new DiscretizedDiskNonShrinkScheme(
                    epsilon, 1.0, side, SMOOTHING, 0.0, 0.0);
            case "huem" -> new DiscretizedHybridUniformExponentialScheme(
                    epsilon, 1.0, Double.parseDouble(words[3]), side, SMOOTHING, 0.0, 0.0);
            default -> throw new IllegalArgumentException(words[0]);
        };
        List<TwoDimensionalIntegerPoint> people = new ArrayList<>();
        for (String line : Files.readAllLines(Path.of(words[4]))) {
            String[] cell = line.split(" ");
            people.add(new TwoDimensionalIntegerPoint(
                    Integer.parseInt(cell[0]), Integer.parseInt(cell[1])));
        }
        Map<TwoDimensionalIntegerPoint, Double> shares =
                scheme.statistic(scheme.getNoiseValueList(people));
        List<String> found = new ArrayList<>();
        shares.forEach((cell, share) -> found.add(
                cell.getXIndex() + " " + cell.getYIndex() + " " + share));
        Files.write(Path.of(words[5]), found);
    }
}
