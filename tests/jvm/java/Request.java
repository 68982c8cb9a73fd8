package aclog;

import com.fasterxml.jackson.databind.JsonNode;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.apache.kafka.server.authorizer.Authorizer;

/** One question to an authorizer: authorize, or authorizeByResourceType. */
record Request(
    AuthorizableRequestContext context, boolean byResourceType, AclOperation operation, ResourceType type, Action action) {
    static final int ROW_BYTES = 7 * 4;

    AuthorizationResult ask(Authorizer authorizer) {
        return byResourceType
            ? authorizer.authorizeByResourceType(context, operation, type)
            : authorizer.authorize(context, List.of(action)).get(0);
    }

    /** Row {@code index} of a table of numbers; {@code contexts} is a cache. */
    static Request of(ByteBuffer rows, int index, String[] strings, Map<Long, AuthorizableRequestContext> contexts) {
        int at = index * ROW_BYTES;
        int principal = rows.getInt(at + 4);
        int host = rows.getInt(at + 8);
        AuthorizableRequestContext context = contexts.computeIfAbsent(
            ((long) principal << 32) | host, key -> new Context(strings[principal], strings[host], 1));
        AclOperation operation = AclOperation.fromCode((byte) rows.getInt(at + 12));
        ResourceType type = ResourceType.fromCode((byte) rows.getInt(at + 16));
        if (rows.getInt(at) == 1) {
            return new Request(context, true, operation, type, null);
        }
        PatternType pattern = PatternType.fromCode((byte) rows.getInt(at + 24));
        ResourcePattern resource = new ResourcePattern(type, strings[rows.getInt(at + 20)], pattern);
        return new Request(context, false, operation, type, new Action(operation, resource, 1, true, true));
    }

    /** A request in full, with the keys of the golden sets. */
    static Request of(JsonNode row) {
        AuthorizableRequestContext context =
            new Context(row.get("principal").asText(), row.get("host").asText(), row.path("api").asInt(1));
        AclOperation operation = AclOperation.fromString(row.get("operation").asText());
        ResourceType type = ResourceType.fromString(row.get("resourceType").asText());
        if (row.path("kind").asText().equals("byResourceType")) {
            return new Request(context, true, operation, type, null);
        }
        ResourcePattern resource = new ResourcePattern(type, row.get("resourceName").asText(), PatternType.LITERAL);
        Action action = new Action(
            operation,
            resource,
            row.path("refCount").asInt(1),
            row.path("logIfAllowed").asBoolean(true),
            row.path("logIfDenied").asBoolean(true));
        return new Request(context, false, operation, type, action);
    }

    /** As SecurityUtils, which is in another package in each generation of Kafka. */
    static KafkaPrincipal principalOf(String text) {
        int colon = text.indexOf(':');
        if (colon < 0) {
            throw new IllegalArgumentException("expected a string in format principalType:principalName but got " + text);
        }
        return new KafkaPrincipal(text.substring(0, colon), text.substring(colon + 1));
    }

    /** Who asks, from where. */
    static final class Context implements AuthorizableRequestContext {
        private final KafkaPrincipal principal;
        private final InetAddress address;
        private final int api;

        Context(String principal, String host, int api) {
            this.principal = principalOf(principal);
            this.api = api;
            try {
                this.address = InetAddress.getByName(host);
            } catch (UnknownHostException e) {
                throw new IllegalArgumentException("not an address: " + host, e);
            }
        }

        @Override
        public String listenerName() {
            return "EXTERNAL";
        }

        @Override
        public SecurityProtocol securityProtocol() {
            return SecurityProtocol.SASL_PLAINTEXT;
        }

        @Override
        public KafkaPrincipal principal() {
            return principal;
        }

        @Override
        public InetAddress clientAddress() {
            return address;
        }

        @Override
        public int requestType() {
            return api;
        }

        @Override
        public int requestVersion() {
            return 0;
        }

        @Override
        public String clientId() {
            return "client";
        }

        @Override
        public int correlationId() {
            return 1;
        }
    }
}
