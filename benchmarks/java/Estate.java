package aclog;

import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.metadata.authorizer.StandardAcl;

/** The estates of {@code benchmarks/shapes.py}, rule for rule. */
final class Estate {
    private static final String STEM = "resource-stem-";

    private final Map<Uuid, StandardAcl> acls = new HashMap<>();

    private Estate() {
    }

    static Map<Uuid, StandardAcl> of(int resources, int perResource, int denyPercent, boolean wildcards) {
        Estate estate = new Estate();
        String[] users = new String[perResource];
        for (int u = 0; u < perResource; u++) {
            users[u] = u == 0 ? "User:test-user" : "User:test-user" + u;
        }
        int number = 0;
        for (int r = 0; r < resources; r++) {
            ResourceType type = r % 10 == 0 ? ResourceType.GROUP : ResourceType.TOPIC;
            PatternType pattern = r % 5 == 0 ? PatternType.PREFIXED : PatternType.LITERAL;
            String name = STEM + r;
            for (int u = 0; u < perResource; u++, number++) {
                estate.pair(type, name, pattern, users[u], "*", denied(number, denyPercent));
            }
        }
        if (wildcards) {
            estate.wildcards(resources, denyPercent);
        }
        return estate.acls;
    }

    static Uuid id(long number) {
        return new Uuid(number * 0x9E3779B97F4A7C15L, number + 2);
    }

    /** As if drawn at random, and the same in every run and in Python. */
    private static boolean denied(long number, int percent) {
        return (number * 2_654_435_761L >> 12) % 100 < percent;
    }

    private void wildcards(int resources, int denyPercent) {
        for (int h = 0; h < 10; h++) {
            String host = "127.0." + h / 256 + "." + (h % 256 + 2);
            pair(ResourceType.TOPIC, STEM, PatternType.PREFIXED, "User:test-user", host, h * 2 < denyPercent / 5);
        }
        for (int h = 0; h < resources / 10; h++) {
            String host = "10." + h / 65536 + "." + h / 256 % 256 + "." + h % 256;
            pair(ResourceType.TOPIC, "*", PatternType.LITERAL, "User:test-user", host, denied(h, denyPercent));
        }
    }

    private void pair(
        ResourceType type, String name, PatternType pattern, String principal, String host, boolean denied) {
        put(type, name, pattern, principal, host, AclPermissionType.ALLOW);
        if (denied) {
            put(type, name, pattern, principal, host, AclPermissionType.DENY);
        }
    }

    private void put(
        ResourceType type, String name, PatternType pattern, String principal, String host, AclPermissionType permission) {
        acls.put(
            id(acls.size() + 1),
            new StandardAcl(type, name, pattern, principal, host, AclOperation.READ, permission));
    }
}
