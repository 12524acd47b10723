package card

import (
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
)

// onSheet is how much of a call's arguments is shown on a sheet.
var onSheet = blockkit.Detail{Value: 300, Keys: 12}

// onSheetRunes is how long they may be all together.
const onSheetRunes = 900

// ArgumentsOnSheet are the arguments as a sheet shows them; whole is whether
// nothing was left out. Values that nobody may read are shown as their length,
// here as everywhere.
func ArgumentsOnSheet(a approvals.Approval, call approvals.ToolCall) (boxes []blockkit.Drawn, whole bool) {
	list, incomplete := blockkit.Draw(blockkit.Arguments(call.Args, a.WriteOnly), onSheet)
	runes := 0
	for i, d := range list {
		if runes += len([]rune(d.Text)); runes > onSheetRunes {
			return append(list[:i:i], blockkit.Drawn{Label: blockkit.Line(blockkit.Styled("The rest is not shown here.", blockkit.Bold))}), false
		}
	}
	return list, !incomplete
}
