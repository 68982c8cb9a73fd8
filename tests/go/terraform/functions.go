package main

import (
	"errors"
	"strings"

	"github.com/hashicorp/terraform/lang"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// functionsIn returns Terraform's functions for a module whose files are read from a directory. The last release of Terraform that lets
// others import them is 0.14; those that came later are added.
func functionsIn(directory string) map[string]function.Function {
	scope := &lang.Scope{BaseDir: directory, PureOnly: true}
	functions := map[string]function.Function{}
	for name, each := range scope.Functions() {
		functions[name] = each
	}
	delete(functions, "list")
	delete(functions, "map")
	delete(functions, "defaults")
	functions["startswith"] = ofTwoStrings(strings.HasPrefix)
	functions["endswith"] = ofTwoStrings(strings.HasSuffix)
	functions["strcontains"] = ofTwoStrings(strings.Contains)
	functions["one"] = one
	return functions
}

func ofTwoStrings(test func(string, string) bool) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "text", Type: cty.String}, {Name: "part", Type: cty.String}},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return cty.BoolVal(test(args[0].AsString(), args[1].AsString())), nil
		},
	})
}

var one = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "list", Type: cty.DynamicPseudoType}},
	Type: func(args []cty.Value) (cty.Type, error) {
		ty := args[0].Type()
		switch {
		case ty.IsListType() || ty.IsSetType():
			return ty.ElementType(), nil
		case ty.IsTupleType() && len(ty.TupleElementTypes()) == 0:
			return cty.DynamicPseudoType, nil
		case ty.IsTupleType() && len(ty.TupleElementTypes()) == 1:
			return ty.TupleElementType(0), nil
		}
		return cty.NilType, errors.New("must be a list, set, or tuple value with either zero or one elements")
	},
	Impl: func(args []cty.Value, ty cty.Type) (cty.Value, error) {
		switch args[0].LengthInt() {
		case 0:
			return cty.NullVal(ty), nil
		case 1:
			return args[0].AsValueSlice()[0], nil
		}
		return cty.NilVal, errors.New("must be a list, set, or tuple value with either zero or one elements")
	},
})
