package policy

import "github.com/countersign/countersign/internal/strictyaml"

// The forms are the file as it is written: every key that is accepted is a
// field here, and the package comment says what it means.

// The values of the forms, each with the place where it is written.
type (
	text         = strictyaml.Text
	whole        = strictyaml.Whole
	truth        = strictyaml.Truth
	free         = strictyaml.Free
	list[T any]  = strictyaml.List[T]
	table[T any] = strictyaml.Table[T]
)

type fileForm struct {
	strictyaml.Mark
	Mode      text                `yaml:"mode"`
	Zone      text                `yaml:"zone"`
	Groups    table[text]         `yaml:"groups"`
	People    table[text]         `yaml:"people"`
	Managers  table[text]         `yaml:"managers"`
	Roles     table[roleForm]     `yaml:"roles"`
	Calendars table[calendarForm] `yaml:"calendars"`
	Default   *askForm            `yaml:"default"`
	Rules     list[ruleForm]      `yaml:"rules"`
	Examples  list[exampleForm]   `yaml:"examples"`
}

type roleForm struct {
	strictyaml.Mark
	People   list[text] `yaml:"people"`
	Groups   list[text] `yaml:"groups"`
	Channels list[text] `yaml:"channels"`
}

type calendarForm struct {
	strictyaml.Mark
	Zone     text       `yaml:"zone"`
	Days     list[text] `yaml:"days"`
	From     text       `yaml:"from"`
	To       text       `yaml:"to"`
	Holidays list[text] `yaml:"holidays"`
}

type ruleForm struct {
	strictyaml.Mark
	Name       text           `yaml:"name"`
	Mode       text           `yaml:"mode"`
	Tools      list[text]     `yaml:"tools"`
	Agents     list[text]     `yaml:"agents"`
	Channels   list[text]     `yaml:"channels"`
	Requesters *requesterForm `yaml:"requesters"`
	Command    *commandForm   `yaml:"command"`
	When       text           `yaml:"when"`
	Summary    text           `yaml:"summary"`
	Check      text           `yaml:"check"`
	Deny       text           `yaml:"deny"`
	Allow      truth          `yaml:"allow"`
	Ask        *askForm       `yaml:"ask"`
}

type requesterForm struct {
	strictyaml.Mark
	People list[text] `yaml:"people"`
	Groups list[text] `yaml:"groups"`
}

// A commandForm is what a rule says of a shell command.
type commandForm struct {
	strictyaml.Mark
	Argument  text              `yaml:"argument"`
	OtherArgs list[text]        `yaml:"other_args"`
	Cwd       *cwdForm          `yaml:"cwd"`
	Forms     list[programForm] `yaml:"forms"`
	Runs      list[text]        `yaml:"runs"`
}

type cwdForm struct {
	strictyaml.Mark
	Argument text       `yaml:"argument"`
	Under    list[text] `yaml:"under"`
}

// A programForm is what one command of a program may be.
type programForm struct {
	strictyaml.Mark
	Run      text             `yaml:"run"`
	Flags    list[text]       `yaml:"flags"`
	Values   table[valueForm] `yaml:"values"`
	Operands list[valueForm]  `yaml:"operands"`
	Min      whole            `yaml:"min"`
	Max      whole            `yaml:"max"`
	Piped    truth            `yaml:"piped"`
}

// A valueForm is what a value of a flag, or an operand, may be.
type valueForm struct {
	strictyaml.Mark
	Is      list[text] `yaml:"is"`
	Under   list[text] `yaml:"under"`
	Matches text       `yaml:"matches"`
}

type askForm struct {
	strictyaml.Mark
	Why                 text               `yaml:"why"`
	Severity            text               `yaml:"severity"`
	Quorums             list[quorumForm]   `yaml:"quorums"`
	Denials             whole              `yaml:"denials"`
	Veto                list[plainQuorum]  `yaml:"veto"`
	Within              span               `yaml:"within"`
	ClaimWithin         span               `yaml:"claim_within"`
	Hours               text               `yaml:"hours"`
	Remind              list[span]         `yaml:"remind"`
	Escalate            list[escalateForm] `yaml:"escalate"`
	RequesterMayApprove truth              `yaml:"requester_may_approve"`
	Participants        truth              `yaml:"participants_may_approve"`
	EditorMayApprove    truth              `yaml:"editor_may_approve"`
	Delegates           truth              `yaml:"delegates"`
	Reason              text               `yaml:"reason"`
	DM                  truth              `yaml:"dm"`
	Fragile             truth              `yaml:"fragile"`
}

// A quorumForm is one quorum, or alternatives.
type quorumForm struct {
	strictyaml.Mark
	Name  text             `yaml:"name"`
	Need  whole            `yaml:"need"`
	From  *fromForm        `yaml:"from"`
	Stage whole            `yaml:"stage"`
	Any   list[optionForm] `yaml:"any"`
}

// An optionForm is one alternative: a quorum, or several together.
type optionForm struct {
	strictyaml.Mark
	Name text              `yaml:"name"`
	Need whole             `yaml:"need"`
	From *fromForm         `yaml:"from"`
	All  list[plainQuorum] `yaml:"all"`
}

type plainQuorum struct {
	strictyaml.Mark
	Name text      `yaml:"name"`
	Need whole     `yaml:"need"`
	From *fromForm `yaml:"from"`
}

type fromForm struct {
	strictyaml.Mark
	People   list[text] `yaml:"people"`
	Groups   list[text] `yaml:"groups"`
	Roles    list[text] `yaml:"roles"`
	Channels list[text] `yaml:"channels"`
	Channel  text       `yaml:"channel"`
}

// here returns where an ask names the channel of the request. The requester
// chooses that channel, and so, without channels, the approvers.
func (f *askForm) here(p *strictyaml.Problems) {
	say := func(f *fromForm) {
		if f != nil && f.Channel.Written() {
			p.Wrong(f.Channel.Mark, "lets the requester choose the approvers by choosing the channel; write channels in the rule too, or name people or groups")
		}
	}
	for _, q := range f.Quorums.Items {
		say(q.From)
		for _, o := range q.Any.Items {
			say(o.From)
			for _, q := range o.All.Items {
				say(q.From)
			}
		}
	}
	for _, q := range f.Veto.Items {
		say(q.From)
	}
	for _, e := range f.Escalate.Items {
		say(e.Add)
	}
}

type escalateForm struct {
	strictyaml.Mark
	After   span      `yaml:"after"`
	Quorum  text      `yaml:"quorum"`
	Add     *fromForm `yaml:"add"`
	Channel text      `yaml:"channel"`
}

type exampleForm struct {
	strictyaml.Mark
	Name      text        `yaml:"name"`
	Call      *callForm   `yaml:"call"`
	Gate      text        `yaml:"gate"`
	Agent     text        `yaml:"agent"`
	Requester text        `yaml:"requester"`
	Groups    list[text]  `yaml:"groups"`
	Channel   text        `yaml:"channel"`
	At        text        `yaml:"at"`
	SoFar     *soFarForm  `yaml:"so_far"`
	Today     *todayForm  `yaml:"today"`
	Check     text        `yaml:"check"`
	Expect    *expectForm `yaml:"expect"`
}

type callForm struct {
	strictyaml.Mark
	Tool text `yaml:"tool"`
	Args free `yaml:"args"`

	Cwd        text `yaml:"cwd"`
	Repository text `yaml:"repository"`
	Branch     text `yaml:"branch"`
	Server     text `yaml:"server"`
}

type soFarForm struct {
	strictyaml.Mark
	Steps    whole        `yaml:"steps"`
	Executed table[whole] `yaml:"executed"`
	Failed   table[whole] `yaml:"failed"`
	Denied   table[whole] `yaml:"denied"`
}

type todayForm struct {
	strictyaml.Mark
	Executed table[whole] `yaml:"executed"`
}

type expectForm struct {
	strictyaml.Mark
	Deny  text `yaml:"deny"`
	Allow text `yaml:"allow"`
	Ask   text `yaml:"ask"`
}
