module github.com/hermes-dockerbox/dockerbox

go 1.26
