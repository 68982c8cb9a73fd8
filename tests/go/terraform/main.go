// Command oracle answers what Terraform's language means, on HashiCorp's own parser and values.
//
//	oracle expressions    reads expressions as JSON strings, one a line, and writes their values
//	oracle rules DIR...   writes the Kafka ACLs of the root modules in each directory, or why there are none
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: oracle expressions | oracle rules DIR...")
		os.Exit(2)
	}
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	switch os.Args[1] {
	case "expressions":
		lines := bufio.NewScanner(os.Stdin)
		lines.Buffer(nil, 1<<26)
		for lines.Scan() {
			var text string
			if err := json.Unmarshal(lines.Bytes(), &text); err != nil {
				panic(err)
			}
			encoder.Encode(answer(text))
		}
	case "rules":
		for _, directory := range os.Args[2:] {
			encoder.Encode(rulesOf(directory))
		}
	}
}
