package main

import (
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
)

// module is one instance of a module.
type module struct {
	tree      *tree
	sources   *sources
	root      string
	given     map[string]cty.Value
	functions map[string]function.Function
	memo      map[string]cty.Value
	busy      map[string]bool
}

type instance struct {
	key   cty.Value
	local map[string]cty.Value
}

// once finds a value the first time that it is asked for, and fails if finding it asks for it again.
func (m *module) once(name string, find func() cty.Value) cty.Value {
	if known, present := m.memo[name]; present {
		return known
	}
	if m.busy[name] {
		fail("a cycle: %s", name)
	}
	m.busy[name] = true
	value := find()
	m.busy[name] = false
	m.memo[name] = value
	return value
}

// evaluate returns the value of an expression, after finding the values of all that it refers to.
func (m *module) evaluate(expression hcl.Expression, local map[string]cty.Value) cty.Value {
	groups := map[string]map[string]cty.Value{}
	variables := map[string]cty.Value{}
	set := func(group, name string, value cty.Value) {
		if groups[group] == nil {
			groups[group] = map[string]cty.Value{}
		}
		groups[group][name] = value
	}
	for _, reference := range expression.Variables() {
		root := reference.RootName()
		if value, present := local[root]; present {
			variables[root] = value
			continue
		}
		name := stepName(reference, 1)
		switch root {
		case "var":
			set(root, name, m.variable(name))
		case "local":
			set(root, name, m.local(name))
		case "module":
			output := stepName(reference, 2)
			if value, present := groups[root][name]; present && value.Type().IsObjectType() && output != "" {
				merged := value.AsValueMap()
				if merged == nil {
					merged = map[string]cty.Value{}
				}
				for key, each := range m.call(name, output).AsValueMap() {
					merged[key] = each
				}
				set(root, name, cty.ObjectVal(merged))
				continue
			}
			set(root, name, m.call(name, output))
		case "path":
			set(root, "module", cty.StringVal(relative(m.root, m.sources.directory)))
			set(root, "root", cty.StringVal("."))
		case "terraform":
			set(root, "workspace", cty.StringVal("default"))
		case "data":
			variables["data"] = cty.DynamicVal
		default:
			set(root, name, m.resource(root+"."+name))
		}
	}
	for name, values := range groups {
		variables[name] = cty.ObjectVal(values)
	}
	value, problems := expression.Value(&hcl.EvalContext{Variables: variables, Functions: m.functions})
	check(problems)
	return value
}

func stepName(reference hcl.Traversal, position int) string {
	if position < len(reference) {
		if step, named := reference[position].(hcl.TraverseAttr); named {
			return step.Name
		}
	}
	return ""
}

func relative(root, directory string) string {
	path, _ := filepath.Rel(root, directory)
	return path
}

func (m *module) variable(name string) cty.Value {
	block, present := m.sources.variables[name]
	if !present {
		fail("var.%s is not declared in %s", name, m.sources.directory)
	}
	return m.once("var."+name, func() cty.Value {
		kind, defaults := cty.DynamicPseudoType, (*typeexpr.Defaults)(nil)
		if attribute, typed := block.attributes["type"]; typed {
			var problems hcl.Diagnostics
			kind, defaults, problems = typeexpr.TypeConstraintWithDefaults(attribute.Expr)
			check(problems)
		}
		value, present := m.given[name]
		nullable, stated := block.attributes["nullable"]
		if present && value.IsNull() && stated {
			allowed, problems := nullable.Expr.Value(nil)
			check(problems)
			present = allowed.True()
		}
		if !present {
			attribute, defaulted := block.attributes["default"]
			if !defaulted {
				return cty.UnknownVal(kind.WithoutOptionalAttributesDeep())
			}
			var problems hcl.Diagnostics
			value, problems = attribute.Expr.Value(nil)
			check(problems)
		}
		if defaults != nil && !value.IsNull() {
			value = defaults.Apply(value)
		}
		converted, err := convert.Convert(value, kind)
		if err != nil {
			fail("%s: var.%s: %s", block.position, name, err)
		}
		return converted
	})
}

func (m *module) local(name string) cty.Value {
	attribute, present := m.sources.locals[name]
	if !present {
		fail("local.%s is not declared in %s", name, m.sources.directory)
	}
	return m.once("local."+name, func() cty.Value { return m.evaluate(attribute.Expr, nil) })
}

// instances returns the instances of a resource or a call.
func (m *module) instances(block *block) []instance {
	if attribute, present := block.attributes["count"]; present {
		value := m.evaluate(attribute.Expr, nil)
		if !value.IsKnown() || value.IsNull() {
			fail("%s: count is unknown or null", block.position)
		}
		count, err := convert.Convert(value, cty.Number)
		if err != nil {
			fail("%s: count: %s", block.position, err)
		}
		times, _ := count.AsBigFloat().Int64()
		var made []instance
		for i := int64(0); i < times; i++ {
			index := cty.NumberIntVal(i)
			made = append(made, instance{index, map[string]cty.Value{"count": cty.ObjectVal(map[string]cty.Value{"index": index})}})
		}
		return made
	}
	attribute, present := block.attributes["for_each"]
	if !present {
		return []instance{{cty.NilVal, nil}}
	}
	value := m.evaluate(attribute.Expr, nil)
	if !value.IsKnown() || value.IsNull() {
		fail("%s: for_each is unknown or null", block.position)
	}
	kind := value.Type()
	if !kind.IsObjectType() && !kind.IsMapType() && !(kind.IsSetType() && (kind.ElementType() == cty.String || value.LengthInt() == 0)) {
		fail("%s: for_each is a %s", block.position, kind.FriendlyName())
	}
	var made []instance
	for elements := value.ElementIterator(); elements.Next(); {
		key, element := elements.Element()
		each := cty.ObjectVal(map[string]cty.Value{"key": key, "value": element})
		made = append(made, instance{key, map[string]cty.Value{"each": each}})
	}
	return made
}

// child returns an instance of a module that this one calls.
func (m *module) child(call *block, at instance) *module {
	source := call.text("source")
	if !strings.HasPrefix(source, ".") {
		fail("%s: module %s is not in the tree", call.position, source)
	}
	made := &module{
		tree: m.tree, sources: m.tree.sources(filepath.Join(m.sources.directory, source)), root: m.root,
		given: map[string]cty.Value{}, functions: m.functions, memo: map[string]cty.Value{}, busy: map[string]bool{},
	}
	if len(made.sources.variables)+len(made.sources.resources)+len(made.sources.outputs)+len(made.sources.locals) == 0 {
		fail("%s: module %s is empty", call.position, source)
	}
	for name, attribute := range call.attributes {
		switch name {
		case "source", "version", "providers", "depends_on", "count", "for_each":
			continue
		}
		if _, declared := made.sources.variables[name]; !declared {
			fail("%s: no variable %s", call.position, name)
		}
		made.given[name] = m.evaluate(attribute.Expr, at.local)
	}
	for name, variable := range made.sources.variables {
		_, given := made.given[name]
		_, defaulted := variable.attributes["default"]
		if !given && !defaulted {
			fail("%s: the argument %s is missing", call.position, name)
		}
	}
	return made
}

// call returns the outputs of a module: one, if there is one instance and one is asked for, else all.
func (m *module) call(name, output string) cty.Value {
	block, present := m.sources.calls[name]
	if !present {
		fail("module.%s is not declared in %s", name, m.sources.directory)
	}
	repeated := block.attributes["count"] != nil || block.attributes["for_each"] != nil
	if repeated {
		output = ""
	}
	return m.once("module."+name+"."+output, func() cty.Value {
		outputs := map[string]cty.Value{}
		var items []cty.Value
		for _, at := range m.instances(block) {
			child := m.child(block, at)
			values := map[string]cty.Value{}
			for _, each := range sortedKeys(child.sources.outputs) {
				if output == "" || output == each {
					values[each] = child.evaluate(child.sources.outputs[each].attributes["value"].Expr, nil)
				}
			}
			if !repeated {
				return cty.ObjectVal(values)
			}
			items = append(items, cty.ObjectVal(values))
			if block.attributes["for_each"] != nil {
				outputs[at.key.AsString()] = cty.ObjectVal(values)
			}
		}
		if block.attributes["count"] != nil {
			return cty.TupleVal(items)
		}
		return cty.ObjectVal(outputs)
	})
}

// resource returns what is configured of a resource; its id is known to Terraform only.
func (m *module) resource(address string) cty.Value {
	block, present := m.sources.resources[address]
	if !present {
		fail("%s is not declared in %s", address, m.sources.directory)
	}
	return m.once(address, func() cty.Value {
		one := func(at instance) cty.Value {
			values := map[string]cty.Value{"id": cty.UnknownVal(cty.String)}
			for name, attribute := range block.attributes {
				if name != "count" && name != "for_each" && name != "depends_on" && name != "provider" {
					values[name] = m.evaluate(attribute.Expr, at.local)
				}
			}
			return cty.ObjectVal(values)
		}
		if block.attributes["count"] != nil {
			var items []cty.Value
			for _, at := range m.instances(block) {
				items = append(items, one(at))
			}
			return cty.TupleVal(items)
		}
		if block.attributes["for_each"] != nil {
			values := map[string]cty.Value{}
			for _, at := range m.instances(block) {
				values[at.key.AsString()] = one(at)
			}
			return cty.ObjectVal(values)
		}
		return one(instance{})
	})
}
