// Package strictyaml reads the files that people write for Countersign, and
// says of everything that is wrong where it is: file, line, column and key.
//
// [Open] is what all of them share: one document, no byte-order mark, a parser
// that cannot end the process. [Decode] reads a document into a form, a struct
// whose values ([Text], [Whole], [List] ...) keep the place where each is
// written, since what is compiled from them is judged later and must still be
// able to name its line. It refuses what a reader could take for something
// else: a key that is set twice, merges, tags, aliases of nothing or of
// themselves, a key without a value, numbers that are not plain, characters
// that do not show, and files too large or too deep to have been written by
// hand. An unknown key is answered with the one that was probably meant.
//
// The policy is read so, and the roster. The configuration shares Open,
// [Anchors], [KeyOf], [Field], [Keys] and [Words] and is not decoded into a
// form: its types are plain Go values that other packages take as they are, and
// three rules differ on purpose. It may merge (<<), because agents repeat each
// other, where that replaces nothing that is written beside it; instructions to a
// model may hold any character, such as the joiners of an emoji, and any number
// of brackets; and what the parser says is shown with the lines around it, as
// there is one file and not a directory of them.
package strictyaml
