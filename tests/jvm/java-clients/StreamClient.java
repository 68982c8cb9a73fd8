package aclog;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.DeleteRecordsOptions;
import org.apache.kafka.clients.admin.DeleteRecordsResult;
import org.apache.kafka.clients.admin.ForwardingAdmin;
import org.apache.kafka.clients.admin.ListOffsetsOptions;
import org.apache.kafka.clients.admin.ListOffsetsResult;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.processor.internals.DefaultKafkaClientSupplier;
import org.apache.kafka.streams.state.Stores;

/**
 * A Kafka Streams application with a repartition topic and a changelog: it counts the records of a topic by a new key.
 * It has done its work once the counts are in its output and what it has read of its repartition topic is deleted.
 */
final class StreamClient {
    private static final long LOOK_MS = 50;
    private static final Duration CLOSE = Duration.ofSeconds(5);
    private final JsonNode ask;
    private final Properties config = new Properties();
    private final Map<String, Object> admin;
    private final CompletableFuture<Void> failed = new CompletableFuture<>();

    StreamClient(JsonNode ask, Map<String, Object> login, Map<String, Object> admin) {
        this.ask = ask;
        this.admin = admin;
        config.putAll(login);
    }

    void run() throws Exception {
        Path directory = Files.createTempDirectory("aclog-stream-");
        config.put("application.id", text("group"));
        config.put("group.protocol", text("protocol"));
        config.put("processing.guarantee", text("guarantee"));
        config.put("state.dir", directory.toString());
        config.put("commit.interval.ms", "100");
        config.put("repartition.purge.interval.ms", "100");
        config.put("default.key.serde", Serdes.StringSerde.class);
        config.put("default.value.serde", Serdes.StringSerde.class);
        config.put("auto.offset.reset", "earliest");
        KafkaStreams streams = new KafkaStreams(topology(), config, new Supplier(failed));
        try {
            streams.setUncaughtExceptionHandler(thrown -> {
                failed.completeExceptionally(thrown);
                return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
            });
            streams.start();
            waitForIt();
        } finally {
            streams.close(CLOSE); // one that was refused may wait for what will not come
        }
    }

    private String text(String key) {
        return ask.get(key).asText();
    }

    private Topology topology() {
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(text("input"))
            .groupBy((key, value) -> value, Grouped.as("by-value"))
            .count(Materialized.as(Stores.inMemoryKeyValueStore("counts")))
            .toStream()
            .to(text("output"), Produced.with(Serdes.String(), Serdes.Long()));
        return builder.build();
    }

    private void waitForIt() throws Exception {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(ClientPipe.SECONDS);
        try (Admin other = Admin.create(admin)) {
            while (offsets(other, text("output"), OffsetSpec.latest()) == 0
                || offsets(other, text("group") + "-by-value-repartition", OffsetSpec.earliest()) == 0) {
                if (failed.isCompletedExceptionally()) {
                    failed.get();
                }
                if (System.nanoTime() > end) {
                    throw new IllegalStateException("it did not do its work");
                }
                Thread.sleep(LOOK_MS);
            }
        }
    }

    /** The sum over the two partitions that its topics have. */
    private static long offsets(Admin admin, String topic, OffsetSpec spec) throws Exception {
        Map<TopicPartition, OffsetSpec> asked = Map.of(new TopicPartition(topic, 0), spec, new TopicPartition(topic, 1), spec);
        ListOffsetsOptions committed = new ListOffsetsOptions(IsolationLevel.READ_COMMITTED);
        return ClientPipe.wait(admin.listOffsets(asked, committed).all()).values().stream()
            .mapToLong(ListOffsetsResult.ListOffsetsResultInfo::offset).sum();
    }

    /** Kafka's own clients; a refusal to delete records, which Streams only logs, is a failure here. */
    private static final class Supplier extends DefaultKafkaClientSupplier {
        private final CompletableFuture<Void> failed;

        private Supplier(CompletableFuture<Void> failed) {
            this.failed = failed;
        }

        @Override
        public Admin getAdmin(Map<String, Object> config) {
            return new ForwardingAdmin(config) {
                @Override
                public DeleteRecordsResult deleteRecords(
                    Map<TopicPartition, RecordsToDelete> records, DeleteRecordsOptions options
                ) {
                    DeleteRecordsResult result = super.deleteRecords(records, options);
                    result.all().whenComplete((done, thrown) -> {
                        if (thrown != null) {
                            failed.completeExceptionally(thrown);
                        }
                    });
                    return result;
                }
            };
        }
    }
}
