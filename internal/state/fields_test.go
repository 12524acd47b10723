package state

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// TestEveryFieldIsStored: a field that is added to a document and forgotten
// in its stored form would be lost, and a requirement with it.
func TestEveryFieldIsStored(t *testing.T) {
	var b approvals.Batch
	fill(t, reflect.ValueOf(&b).Elem())
	b.Version = 0 // beside the document
	doc, err := encodeBatch(b)
	require.NoError(t, err)
	got, err := decodeBatch(doc)
	require.NoError(t, err)
	require.Equal(t, b, got)

	var sheet approvals.Sheet
	fill(t, reflect.ValueOf(&sheet).Elem())
	sheet.Version = 0
	doc, err = encodeSheet(sheet)
	require.NoError(t, err)
	gotSheet, err := decodeSheet(doc)
	require.NoError(t, err)
	require.Equal(t, sheet, gotSheet)

	var run agentrun.Run
	fill(t, reflect.ValueOf(&run).Elem())
	run.Version = 0
	doc, err = encodeRun(run)
	require.NoError(t, err)
	gotRun, err := decodeRun(doc)
	require.NoError(t, err)
	require.Equal(t, run, gotRun)

	var thread agentrun.Thread
	fill(t, reflect.ValueOf(&thread).Elem())
	thread.Version = 0
	doc, err = encodeThread(thread)
	require.NoError(t, err)
	gotThread, err := decodeThread(doc)
	require.NoError(t, err)
	require.Equal(t, thread, gotThread)
}

// fill sets everything below v to something.
func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	switch x := v.Addr().Interface().(type) {
	case *time.Time:
		*x = noon
		return
	case *json.RawMessage:
		*x = json.RawMessage(`{"n":1}`)
		return
	case *approvals.CallResult:
		*x = approvals.ToolReturn{ReturnValue: json.RawMessage(`1`), Content: json.RawMessage(`"c"`), Metadata: json.RawMessage(`{"m":1}`)}
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint8:
		v.SetUint(7)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(t, v.Index(0))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, key)
		fill(t, value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Array:
		for i := range v.Len() {
			fill(t, v.Index(i))
		}
	case reflect.Struct:
		for _, f := range v.Fields() {
			fill(t, f)
		}
	default:
		require.Fail(t, "teach fill about "+v.Type().String())
	}
}
