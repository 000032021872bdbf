import io.anserini.index.SimpleIndexer;
import io.anserini.search.SimpleSearcher;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Builds an index of a file of JSON documents as WebShop does, and asks it every line of a file of queries. */
class WebShopLucene {
    /** Arguments: documents, queries, folder of the index, file for the ids found (a line a query), hits a query. */
    public static void main(String[] args) throws Exception {
        Path documents = Path.of(args[0]);
        long start = System.nanoTime();
        SimpleIndexer indexer = new SimpleIndexer(args[2]);
        try (Stream<String> lines = Files.lines(documents)) {
            lines.forEach(indexer::addRawDocument);
        }
        indexer.close();
        double build = seconds(start);

        List<String> queries = Files.readAllLines(Path.of(args[1]));
        SimpleSearcher searcher = new SimpleSearcher(args[2]);
        int hits = Integer.parseInt(args[4]);
        start = System.nanoTime();
        try (PrintStream out = new PrintStream(args[3], StandardCharsets.UTF_8)) {
            for (String query : queries) {
                out.println(ids(searcher.search(query, hits)));
            }
        }
        double first = seconds(start);
        start = System.nanoTime();
        for (String query : queries) {
            searcher.search(query, hits);
        }
        System.out.printf("{\"build_s\": %f, \"first_s\": %f, \"again_s\": %f}%n", build, first, seconds(start));
    }

    static String ids(SimpleSearcher.Result[] results) {
        return Arrays.stream(results).map(result -> result.docid).collect(Collectors.joining(" "));
    }

    static double seconds(long start) {
        return (System.nanoTime() - start) / 1e9;
    }
}
