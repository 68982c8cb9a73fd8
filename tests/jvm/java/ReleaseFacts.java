package aclog;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.InputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.charset.StandardCharsets;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metadata.MetadataRecordType;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.CompactArrayOf;
import org.apache.kafka.common.protocol.types.Field;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.security.authorizer.AclEntry;
import org.apache.kafka.server.common.Feature;
import org.apache.kafka.server.common.MetadataVersion;

/**
 * What the classes of a release say of themselves, as one JSON object: metadata records with the schema of each
 * version, levels of metadata.version and what each gates, features, APIs, errors, and the codes of ACLs.
 * {@code tests/support/kafka/release_facts.py} is the other end.
 */
public final class ReleaseFacts {
    private static final ObjectMapper JSON = new ObjectMapper();

    private ReleaseFacts() { }

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        ObjectNode facts = JSON.createObjectNode();
        Properties release = new Properties();
        try (InputStream in = ReleaseFacts.class.getResourceAsStream("/kafka/kafka-version.properties")) {
            release.load(in);
        }
        facts.put("version", release.getProperty("version"));
        facts.put("commit", release.getProperty("commitId"));
        facts.set("records", records());
        facts.set("levels", levels());
        facts.put("minimumLevel", MetadataVersion.MINIMUM_VERSION.featureLevel());
        facts.put("newestLevel", MetadataVersion.LATEST_PRODUCTION.featureLevel());
        facts.set("features", features());
        facts.set("apis", apis());
        facts.set("errors", errors());
        facts.set("codes", codes());
        facts.set("supportedOperations", supportedOperations());
        out.println(JSON.writeValueAsString(facts));
        out.flush();
    }

    private static ArrayNode records() throws ReflectiveOperationException {
        ArrayNode found = JSON.createArrayNode();
        for (MetadataRecordType type : MetadataRecordType.values()) {
            ObjectNode record = found.addObject();
            record.put("name", type.name()).put("apiKey", type.id());
            record.put("oldest", type.lowestSupportedVersion()).put("newest", type.highestSupportedVersion());
            Schema[] schemas = (Schema[]) type.newMetadataRecord().getClass().getField("SCHEMAS").get(null);
            ObjectNode versions = record.putObject("versions");
            for (int version = type.lowestSupportedVersion(); version <= type.highestSupportedVersion(); version++) {
                versions.set(String.valueOf(version), fields(schemas[version]));
            }
        }
        return found;
    }

    private static ArrayNode fields(Schema schema) {
        ArrayNode found = JSON.createArrayNode();
        for (BoundField bound : schema.fields()) {
            if (bound.def.type instanceof TaggedFields tagged) {
                for (Map.Entry<Integer, Field> each : new TreeMap<>(tagged.fields()).entrySet()) {
                    ObjectNode field = found.addObject();
                    field.put("name", each.getValue().name).put("tag", each.getKey());
                    field.set("type", type(each.getValue().type));
                }
            } else {
                ObjectNode field = found.addObject().put("name", bound.def.name);
                field.set("type", type(bound.def.type));
            }
        }
        return found;
    }

    private static ObjectNode type(Type type) {
        ObjectNode found = JSON.createObjectNode();
        if (type instanceof Schema schema) {
            found.set("struct", fields(schema));
        } else if (type.isArray()) {
            found.set("array", type(type.arrayElementType().orElseThrow()));
            found.put("compact", type instanceof CompactArrayOf).put("nullable", type.isNullable());
        } else {
            found.put("plain", type.toString());
        }
        return found;
    }

    /** Each level, and what its methods without arguments say of it: whether something is supported, and versions. */
    private static ArrayNode levels() throws ReflectiveOperationException {
        ArrayNode found = JSON.createArrayNode();
        List<Method> gates = Stream.of(MetadataVersion.class.getMethods())
            .filter(each -> each.getDeclaringClass() == MetadataVersion.class && each.getParameterCount() == 0)
            .filter(each -> !Modifier.isStatic(each.getModifiers()) && !each.getName().equals("featureLevel"))
            .filter(each -> each.getReturnType() == boolean.class || each.getReturnType() == short.class)
            .sorted(Comparator.comparing(Method::getName))
            .toList();
        for (MetadataVersion version : MetadataVersion.values()) {
            ObjectNode level = found.addObject();
            level.put("level", version.featureLevel()).put("name", version.version());
            ObjectNode said = level.putObject("gates");
            for (Method gate : gates) {
                said.set(gate.getName(), answer(gate, version));
            }
        }
        return found;
    }

    /** Null where the method throws: a level that has no such record has no version of it. */
    private static JsonNode answer(Method gate, MetadataVersion version) throws IllegalAccessException {
        try {
            return JSON.valueToTree(gate.invoke(version));
        } catch (InvocationTargetException e) {
            return JSON.nullNode();
        }
    }

    private static ArrayNode features() {
        ArrayNode found = JSON.createArrayNode();
        for (Feature feature : Feature.PRODUCTION_FEATURES) {
            ObjectNode row = found.addObject().put("name", feature.featureName());
            row.put("least", feature.minimumProduction()).put("most", feature.latestProduction());
            ObjectNode defaults = row.putObject("defaults");
            for (MetadataVersion version : MetadataVersion.values()) {
                defaults.put(String.valueOf(version.featureLevel()), feature.defaultLevel(version));
            }
        }
        return found;
    }

    private static ArrayNode apis() {
        ArrayNode found = JSON.createArrayNode();
        for (ApiKeys api : ApiKeys.values()) {
            ObjectNode row = found.addObject().put("key", api.id).put("name", api.name);
            ArrayNode listeners = row.putArray("listeners");
            api.messageType.listeners().forEach(each -> listeners.add(each.name()));
            ArrayNode flexible = row.putArray("flexible");
            api.toApiVersion(false).ifPresent(versions -> {
                row.put("oldest", versions.minVersion()).put("newest", versions.maxVersion());
                for (short version = versions.minVersion(); version <= versions.maxVersion(); version++) {
                    flexible.add(api.requestHeaderVersion(version) >= 2);
                }
            });
        }
        return found;
    }

    private static ObjectNode errors() {
        ObjectNode found = JSON.createObjectNode();
        for (Errors error : Errors.values()) {
            found.put(String.valueOf(error.code()), error.name());
        }
        return found;
    }

    private static ObjectNode codes() {
        ObjectNode found = JSON.createObjectNode();
        ObjectNode types = found.putObject("ResourceType");
        Stream.of(ResourceType.values()).forEach(each -> types.put(each.name(), each.code()));
        ObjectNode patterns = found.putObject("PatternType");
        Stream.of(PatternType.values()).forEach(each -> patterns.put(each.name(), each.code()));
        ObjectNode operations = found.putObject("AclOperation");
        Stream.of(AclOperation.values()).forEach(each -> operations.put(each.name(), each.code()));
        ObjectNode permissions = found.putObject("AclPermissionType");
        Stream.of(AclPermissionType.values()).forEach(each -> permissions.put(each.name(), each.code()));
        return found;
    }

    private static ObjectNode supportedOperations() {
        ObjectNode found = JSON.createObjectNode();
        for (ResourceType type : ResourceType.values()) {
            if (type != ResourceType.UNKNOWN && type != ResourceType.ANY) {
                ArrayNode names = found.putArray(type.name());
                AclEntry.supportedOperations(type).stream().map(Enum::name).sorted().forEach(names::add);
            }
        }
        return found;
    }
}
