"""The problems of TIR-Math: generated families, and the files people bring."""
