package ecnu.dll.construction._config;

/** What the mechanisms take from the class of this name, which reads the authors' data sets. */
public final class Constant {
    public static final int eliminateDoubleErrorIndexSize = 2;
    public static final double DEFAULT_STOP_VALUE_TAO = 1e-6;

    private Constant() {}
}
