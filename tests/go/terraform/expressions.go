package main

import (
	"encoding/json"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// Answer is what an expression means.
type Answer struct {
	Expression string          `json:"expression"`
	Type       json.RawMessage `json:"type,omitempty"`
	Value      json.RawMessage `json:"value,omitempty"`
	Unknown    bool            `json:"unknown,omitempty"`
	Error      string          `json:"error,omitempty"`
}

func answer(text string) Answer {
	expression, problems := hclsyntax.ParseExpression([]byte(text), "expression", hcl.InitialPos)
	if problems.HasErrors() {
		return Answer{Expression: text, Error: "syntax"}
	}
	value, problems := expression.Value(&hcl.EvalContext{Functions: functionsIn(".")})
	if problems.HasErrors() {
		return Answer{Expression: text, Error: "value"}
	}
	if !value.IsWhollyKnown() {
		return Answer{Expression: text, Unknown: true}
	}
	value, _ = value.UnmarkDeep()
	kind, err := ctyjson.MarshalType(value.Type())
	if err != nil {
		panic(err)
	}
	content, err := ctyjson.Marshal(value, value.Type())
	if err != nil {
		return Answer{Expression: text, Error: "json"}
	}
	if value.Type() == cty.DynamicPseudoType {
		content = json.RawMessage("null")
	}
	return Answer{Expression: text, Type: kind, Value: content}
}
