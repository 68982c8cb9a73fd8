package main

import (
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/zclconf/go-cty/cty"
)

// block is a labelled block of a module, with what override files say of it.
type block struct {
	labels     []string
	position   hcl.Range
	attributes hcl.Attributes
}

func (b *block) text(name string) string {
	attribute, present := b.attributes[name]
	if !present {
		return ""
	}
	value, problems := attribute.Expr.Value(nil)
	check(problems)
	return value.AsString()
}

// sources are the declarations of one directory.
type sources struct {
	directory                                  string
	variables, outputs, calls, resources, data map[string]*block
	locals                                     hcl.Attributes
}

var topLevel = &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{
	{Type: "variable", LabelNames: []string{"name"}}, {Type: "output", LabelNames: []string{"name"}},
	{Type: "module", LabelNames: []string{"name"}}, {Type: "resource", LabelNames: []string{"type", "name"}},
	{Type: "data", LabelNames: []string{"type", "name"}}, {Type: "locals"}, {Type: "terraform"},
	{Type: "provider", LabelNames: []string{"name"}},
}}

func (t *tree) sources(directory string) *sources {
	directory = filepath.Clean(directory)
	if known, present := t.parsed[directory]; present {
		return known
	}
	read := &sources{
		directory: directory, variables: map[string]*block{}, outputs: map[string]*block{}, calls: map[string]*block{},
		resources: map[string]*block{}, data: map[string]*block{}, locals: hcl.Attributes{},
	}
	names, err := filepath.Glob(filepath.Join(t.root, directory, "*"))
	if err != nil {
		fail("%s", err)
	}
	sort.Strings(names)
	var overrides []string
	parser := hclparse.NewParser()
	for _, name := range names {
		stem := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(name), ".json"), ".tf")
		if stem == filepath.Base(name) || strings.HasSuffix(name, ".tfvars.json") || strings.HasSuffix(stem, ".json") {
			continue
		}
		if stem == "override" || strings.HasSuffix(stem, "_override") {
			overrides = append(overrides, name)
			continue
		}
		read.add(parse(parser, name), false)
	}
	for _, name := range overrides {
		read.add(parse(parser, name), true)
	}
	t.parsed[directory] = read
	return read
}

func parse(parser *hclparse.Parser, name string) hcl.Body {
	var file *hcl.File
	var problems hcl.Diagnostics
	if strings.HasSuffix(name, ".json") {
		file, problems = parser.ParseJSONFile(name)
	} else {
		file, problems = parser.ParseHCLFile(name)
	}
	check(problems)
	return file.Body
}

func (s *sources) add(body hcl.Body, override bool) {
	content, problems := body.Content(topLevel)
	check(problems)
	for _, each := range content.Blocks {
		attributes, _ := each.Body.JustAttributes()
		if each.Type == "locals" {
			for name, attribute := range attributes {
				if _, present := s.locals[name]; present && !override {
					fail("%s: local %s is declared twice", attribute.Range, name)
				}
				s.locals[name] = attribute
			}
			continue
		}
		into := map[string]map[string]*block{
			"variable": s.variables, "output": s.outputs, "module": s.calls, "resource": s.resources, "data": s.data,
		}[each.Type]
		if into == nil {
			continue
		}
		key := strings.Join(each.Labels, ".")
		known, present := into[key]
		if present != override {
			fail("%s: %s %s is declared twice, or overridden and not declared", each.DefRange, each.Type, key)
		}
		if override {
			for name, attribute := range attributes {
				known.attributes[name] = attribute
			}
			continue
		}
		into[key] = &block{labels: each.Labels, position: each.DefRange, attributes: attributes}
	}
}

// variableFiles returns what terraform.tfvars and *.auto.tfvars say, later files over earlier ones.
func (t *tree) variableFiles(root string) map[string]cty.Value {
	given := map[string]cty.Value{}
	automatic, _ := filepath.Glob(filepath.Join(t.root, root, "*.auto.tfvars"))
	inJSON, _ := filepath.Glob(filepath.Join(t.root, root, "*.auto.tfvars.json"))
	automatic = append(automatic, inJSON...)
	sort.Strings(automatic)
	names := append([]string{
		filepath.Join(t.root, root, "terraform.tfvars"), filepath.Join(t.root, root, "terraform.tfvars.json"),
	}, automatic...)
	parser := hclparse.NewParser()
	for _, name := range names {
		if _, err := os.Stat(name); err != nil {
			continue
		}
		attributes, problems := parse(parser, name).JustAttributes()
		check(problems)
		for key, attribute := range attributes {
			value, problems := attribute.Expr.Value(nil)
			check(problems)
			given[key] = value
		}
	}
	return given
}
