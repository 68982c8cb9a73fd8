package aclog;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.PrintStream;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.server.authorizer.AclCreateResult;
import org.apache.kafka.server.common.MetadataVersion;

/**
 * What the real AclControlManager makes of ACLs that are to be created. Stdin is a JSON object: `acls` (rows of resource
 * type, name, pattern type, principal, host, operation, permission type) and `requests` (level of metadata.version, and
 * the places of the ACLs that one request creates). The answer is an object: `invalid`, the message of each ACL that the
 * classes of a request cannot hold, else null, and `results`, for each request and ACL null or [error code, message].
 * The class is package-private in part, and createAcls takes more arguments in some releases: reflection finds it.
 */
public final class AclCreation {
    private static final ObjectMapper JSON = new ObjectMapper();

    private AclCreation() { }

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        JsonNode asked = JSON.readTree(System.in);
        ObjectNode reply = JSON.createObjectNode();
        ArrayNode invalid = reply.putArray("invalid");
        List<AclBinding> bindings = new ArrayList<>();
        for (JsonNode row : asked.get("acls")) {
            try {
                bindings.add(binding(row));
                invalid.addNull();
            } catch (IllegalArgumentException e) {
                bindings.add(null);
                invalid.add(e.getMessage());
            }
        }
        ArrayNode results = reply.putArray("results");
        for (JsonNode request : asked.get("requests")) {
            List<AclBinding> acls = new ArrayList<>();
            request.get("places").forEach(place -> acls.add(bindings.get(place.asInt())));
            results.add(created(acls, MetadataVersion.fromFeatureLevel((short) request.get("level").asInt())));
        }
        out.println(JSON.writeValueAsString(reply));
        out.flush();
    }

    private static AclBinding binding(JsonNode row) {
        return new AclBinding(
            new ResourcePattern(
                ResourceType.fromCode((byte) row.get(0).asInt()),
                row.get(1).asText(),
                PatternType.fromCode((byte) row.get(2).asInt())),
            new AccessControlEntry(
                row.get(3).asText(),
                row.get(4).asText(),
                AclOperation.fromCode((byte) row.get(5).asInt()),
                AclPermissionType.fromCode((byte) row.get(6).asInt())));
    }

    private static ArrayNode created(List<AclBinding> acls, MetadataVersion version) throws ReflectiveOperationException {
        Object manager = manager();
        Method create = Stream.of(manager.getClass().getDeclaredMethods())
            .filter(each -> each.getName().equals("createAcls"))
            .findFirst().orElseThrow();
        create.setAccessible(true);
        Object[] arguments = Stream.of(create.getParameterTypes())
            .map(type -> type == List.class ? acls : argument(type, version))
            .toArray();
        ArrayNode found = JSON.createArrayNode();
        Object result;
        try {
            result = create.invoke(manager, arguments);
        } catch (InvocationTargetException e) {
            acls.forEach(acl -> error(found, e.getCause()));
            return found;
        }
        Method response = result.getClass().getMethod("response");
        response.setAccessible(true);
        for (Object each : (List<?>) response.invoke(result)) {
            ((AclCreateResult) each).exception().ifPresentOrElse(e -> error(found, e), found::addNull);
        }
        return found;
    }

    private static Object argument(Class<?> type, MetadataVersion version) {
        if (type == MetadataVersion.class) {
            return version;
        }
        throw new IllegalStateException("createAcls takes a " + type.getName() + ", of which this program knows nothing");
    }

    private static Object manager() throws ReflectiveOperationException {
        Class<?> builder = Class.forName("org.apache.kafka.controller.AclControlManager$Builder");
        Constructor<?> maker = builder.getDeclaredConstructor();
        maker.setAccessible(true);
        Method build = builder.getDeclaredMethod("build");
        build.setAccessible(true);
        return build.invoke(maker.newInstance());
    }

    private static void error(ArrayNode found, Throwable e) {
        found.addArray().add(Errors.forException(e).code()).add(e.getMessage());
    }
}
