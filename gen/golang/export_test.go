package golang

// For the tests of what comments can do.
var (
	CommentText = commentText
	Formatted   = formatted
)
