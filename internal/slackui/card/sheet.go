package card

import (
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
)

// onSheet is how much of the arguments of a call a sheet shows.
var onSheet = blockkit.Detail{Value: 300, Keys: 12}

// onSheetRunes bounds them all together.
const onSheetRunes = 900

// ArgumentsOnSheet draws the arguments for a sheet. whole reports whether
// nothing was left out; hidden values count as shown.
func ArgumentsOnSheet(a approvals.Approval, call approvals.ToolCall) (boxes []blockkit.ArgumentBox, whole bool) {
	list, incomplete := blockkit.DrawArguments(blockkit.Arguments(call.Args, a.WriteOnly), onSheet)
	runes := 0
	for i, d := range list {
		if runes += len([]rune(d.Text)); runes > onSheetRunes {
			return append(list[:i:i], blockkit.ArgumentBox{Label: blockkit.Line(blockkit.Styled(sayRestNotShown, blockkit.Bold))}), false
		}
	}
	return list, !incomplete
}
