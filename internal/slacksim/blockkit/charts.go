package blockkit

import (
	"encoding/json"
	"fmt"
	"slices"
)

const maxCharts = 2 // of a payload

// dataVisualization is a chart. The reference gives the name of a series 20 characters and
// has one of 31 in its example of a line chart, so names are not measured.
//
// https://docs.slack.dev/reference/block-kit/blocks/data-visualization-block
var dataVisualization = also(block(
	need("title", text(1, 50)),
	need("chart", typed(map[string]rule{
		"pie": shape(need("type", anyText), need("segments", list(1, 12, shape(need("label", chartLabel), need("value", positive))))),
		"bar": seriesChart, "area": seriesChart, "line": seriesChart,
	}))),
	func(c *Checker, _ object, at string) {
		if c.charts++; c.charts == maxCharts+1 {
			c.fail(at+"/type", "no more than %d data_visualization blocks allowed", maxCharts)
		}
	})

var (
	chartLabel  = text(1, 20)
	chartPoint  = shape(need("label", chartLabel), need("value", number))
	seriesChart = also(shape(
		need("type", anyText),
		need("series", list(1, 12, shape(need("name", text(1, unlimited)), need("data", list(1, 20, chartPoint))))),
		need("axis_config", shape(
			need("categories", list(1, 20, chartLabel)), may("x_label", text(0, 50)), may("y_label", text(0, 50))))), seriesFit)
)

func positive(c *Checker, v any, at string) {
	number(c, v, at)
	if n, ok := v.(json.Number); ok {
		if f, err := n.Float64(); err != nil || f <= 0 {
			c.fail(at, "must be greater than 0")
		}
	}
}

// seriesFit checks that each series has a name of its own, and one point for each category.
func seriesFit(c *Checker, chart object, at string) {
	axis, _ := chart["axis_config"].(object)
	categories, _ := axis["categories"].([]any)
	series, _ := chart["series"].([]any)
	named := map[string]bool{}
	for i, s := range series {
		o, _ := s.(object)
		name := str(o["name"])
		if name != "" && named[name] {
			c.fail(fmt.Sprintf("%s/series/%d/name", at, i), "must be unique")
		}
		named[name] = true
		data, _ := o["data"].([]any)
		fits := len(data) == len(categories) || len(categories) == 0
		for _, category := range categories {
			fits = fits && slices.ContainsFunc(data, func(v any) bool {
				point, _ := v.(object)
				return str(point["label"]) == str(category)
			})
		}
		if !fits {
			c.fail(fmt.Sprintf("%s/series/%d/data", at, i), "must have one point for each of `categories`")
		}
	}
}
