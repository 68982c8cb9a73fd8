#include "forest.h"

/* The resource and the name of a node; DAMAGED if either is out of bounds. */
static int node_name(const flat *base, int32_t node, int32_t *resource, text *name)
{
    *resource = load_i32(base->prefix_resources, (size_t)node);
    if (*resource < 0 || *resource >= (int64_t)base->resources.count)
        return DAMAGED;
    size_t size;
    const uint8_t *data = key_at(&base->resources, (uint32_t)*resource, &size);
    size_t start = 1;
    while (data != NULL && start < size && data[start] >= 0x80)
        start++;
    if (data == NULL || start + 2 > size || size > LONGEST_TEXT)
        return DAMAGED;
    *name = (text){data + start + 1, (uint32_t)(size - start - 2)};
    return 0;
}

static int begins_with(text name, text prefix)
{
    return prefix.size <= name.size && memcmp(name.data, prefix.data, prefix.size) == 0;
}

static int is_after(text left, text right)
{
    uint32_t shared = left.size < right.size ? left.size : right.size;
    int order = memcmp(left.data, right.data, shared);
    return order != 0 ? order > 0 : left.size > right.size;
}

/* The last node of the type whose name is not after this one, or ABSENT, or DAMAGED. */
static int32_t last_up_to(const flat *base, unsigned type, text name)
{
    int32_t low = base->type_nodes[type], high = base->type_nodes[type + 1], first = low;
    while (low < high) {
        int32_t middle = low + (high - low) / 2, resource;
        text text_here;
        if (node_name(base, middle, &resource, &text_here) < 0)
            return DAMAGED;
        if (is_after(text_here, name))
            high = middle;
        else
            low = middle + 1;
    }
    return low > first ? low - 1 : ABSENT;
}

/* Whether a link leads towards the root: names sort after their prefixes, so each step goes down and the walk ends. */
static int is_link(int32_t link, int32_t node)
{
    return link >= ABSENT && link < node;
}

/* The longest prefix among a node and its ancestors, or ABSENT, or DAMAGED. */
static int32_t longest(const flat *base, int32_t node, text name)
{
    while (node >= 0) {
        int32_t resource, jump = load_i32(base->prefix_jumps, (size_t)node);
        int32_t parent = load_i32(base->prefix_parents, (size_t)node);
        text here, there;
        if (!is_link(jump, node) || !is_link(parent, node) || node_name(base, node, &resource, &here) < 0)
            return DAMAGED;
        if (begins_with(name, here))
            return node;
        if (jump >= 0 && node_name(base, jump, &resource, &there) < 0)
            return DAMAGED;
        /* If the jump's target is no prefix, nothing between it and this node is: all of them begin with the target. */
        node = jump >= 0 && !begins_with(name, there) ? jump : parent;
    }
    return ABSENT;
}

int forest_visit(search *self)
{
    const flat *base = self->base;
    int32_t node = last_up_to(base, self->asked->type, self->asked->name);
    if (node >= 0)
        node = longest(base, node, self->asked->name);
    while (node >= 0) {
        level found = {.prefixed = 1};
        text name;
        if (node_name(base, node, &found.resource, &name) < 0 ||
            flat_cells(base, found.resource, &found.low, &found.high) < 0)
            return DAMAGED;
        found.length = name.size;
        int status = self->visit(self, &found, 1);
        if (status != 0)
            return status;
        int32_t parent = load_i32(base->prefix_parents, (size_t)node);
        if (!is_link(parent, node))
            return DAMAGED;
        node = parent;
    }
    return node == DAMAGED ? DAMAGED : 0;
}
