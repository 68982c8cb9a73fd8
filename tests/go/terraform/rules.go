package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// Rule is what a resource of the provider Mongey/kafka or confluentinc/confluent states, in the words of aclog's JSON lines.
type Rule struct {
	ResourceType   string `json:"resourceType"`
	ResourceName   string `json:"resourceName"`
	PatternType    string `json:"patternType"`
	Principal      string `json:"principal"`
	Host           string `json:"host"`
	Operation      string `json:"operation"`
	PermissionType string `json:"permissionType"`
	File           string `json:"file"`
	Line           int    `json:"line"`
}

// Expansion is the outcome for one directory: its rules, or why there are none.
type Expansion struct {
	Rules []Rule `json:"rules"`
	Error string `json:"error,omitempty"`
}

type fault struct{ text string }

func fail(format string, arguments ...any) {
	panic(fault{fmt.Sprintf(format, arguments...)})
}

func check(problems hcl.Diagnostics) {
	for _, problem := range problems {
		if problem.Severity == hcl.DiagError {
			fail("%s", problem.Error())
		}
	}
}

var attributeNames = map[string][]string{
	"kafka_acl": {
		"resource_type", "resource_name", "resource_pattern_type_filter", "acl_principal", "acl_host", "acl_operation",
		"acl_permission_type",
	},
	"confluent_kafka_acl": {"resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission"},
}

func rulesOf(directory string) (result Expansion) {
	defer func() {
		if caught := recover(); caught != nil {
			problem, ours := caught.(fault)
			if !ours {
				panic(caught)
			}
			result = Expansion{Error: problem.text}
		}
	}()
	tree := &tree{root: directory, parsed: map[string]*sources{}}
	result.Rules = []Rule{}
	for _, root := range tree.roots() {
		module := &module{tree: tree, sources: tree.sources(root), root: root, given: tree.variableFiles(root), memo: map[string]cty.Value{}, busy: map[string]bool{}}
		module.functions = functionsIn(filepath.Join(directory, root))
		module.addRules(&result.Rules)
	}
	return result
}

// tree is the directory that holds all modules.
type tree struct {
	root   string
	parsed map[string]*sources
}

// roots returns the directories with configuration that no other one calls.
func (t *tree) roots() []string {
	found := map[string]bool{}
	err := filepath.WalkDir(t.root, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && path != t.root {
			return filepath.SkipDir
		}
		if !entry.IsDir() && (strings.HasSuffix(path, ".tf") || strings.HasSuffix(path, ".tf.json")) {
			relative, _ := filepath.Rel(t.root, filepath.Dir(path))
			found[relative] = true
		}
		return nil
	})
	if err != nil {
		fail("%s", err)
	}
	called := map[string]bool{}
	for directory := range found {
		for _, call := range t.sources(directory).calls {
			if source := call.text("source"); strings.HasPrefix(source, ".") {
				called[filepath.Join(directory, source)] = true
			}
		}
	}
	var roots []string
	for directory := range found {
		if !called[directory] {
			roots = append(roots, directory)
		}
	}
	sort.Strings(roots)
	return roots
}

func (m *module) addRules(rules *[]Rule) {
	for _, name := range sortedKeys(m.sources.resources) {
		block := m.sources.resources[name]
		names, makesRules := attributeNames[block.labels[0]]
		if !makesRules {
			continue
		}
		for _, instance := range m.instances(block) {
			*rules = append(*rules, m.rule(block, names, instance.local))
		}
	}
	for _, name := range sortedKeys(m.sources.calls) {
		for _, instance := range m.instances(m.sources.calls[name]) {
			m.child(m.sources.calls[name], instance).addRules(rules)
		}
	}
}

func (m *module) rule(block *block, names []string, local map[string]cty.Value) Rule {
	texts := make([]string, len(names))
	for i, name := range names {
		attribute, present := block.attributes[name]
		value := cty.NullVal(cty.String)
		if present {
			value = m.evaluate(attribute.Expr, local)
		}
		if !value.IsKnown() {
			fail("%s: %s is unknown", block.position, name)
		}
		if value.IsNull() && name == "resource_pattern_type_filter" {
			value = cty.StringVal("Literal")
		}
		if value.IsNull() {
			fail("%s: %s is missing", block.position, name)
		}
		unmarked, _ := value.Unmark()
		text, err := convert.Convert(unmarked, cty.String)
		if err != nil {
			fail("%s: %s: %s", block.position, name, err)
		}
		texts[i] = text.AsString()
	}
	file, _ := filepath.Rel(m.tree.root, block.position.Filename)
	return Rule{
		ResourceType: upper(texts[0]), ResourceName: texts[1], PatternType: upper(texts[2]), Principal: texts[3], Host: texts[4],
		Operation: upper(texts[5]), PermissionType: upper(texts[6]), File: file, Line: block.position.Start.Line,
	}
}

// upper turns the words of either provider into Kafka's: TransactionalID, TRANSACTIONAL_ID.
func upper(word string) string {
	if word == strings.ToUpper(word) {
		return word
	}
	var result strings.Builder
	for i, letter := range strings.ReplaceAll(word, "ID", "Id") {
		if i > 0 && letter >= 'A' && letter <= 'Z' {
			result.WriteByte('_')
		}
		result.WriteRune(letter)
	}
	return strings.ToUpper(result.String())
}

func sortedKeys[V any](values map[string]V) []string {
	keys := make([]string, 0, len(values))
	for key := range values {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}
