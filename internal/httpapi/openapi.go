package httpapi

import (
	_ "embed"
	"fmt"
	"net/http"
	"sync"

	"github.com/goccy/go-yaml"
)

//go:embed openapi.yaml
var openapi []byte

// Document returns the OpenAPI document as JSON.
var Document = sync.OnceValues(func() ([]byte, error) {
	doc, err := yaml.YAMLToJSON(openapi)
	if err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	return doc, nil
})

func document(*http.Request) (answer, error) {
	doc, err := Document()
	return answer{status: http.StatusOK, media: "application/json", body: doc}.set("Cache-Control", "max-age=300"), err
}
