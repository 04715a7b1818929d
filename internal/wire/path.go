package wire

// AgentPath is where every sandbox has the agent, on a read-only mount. Besides the resident one, which speaks this package's frames, its
// program copies files and joins sockets: see its usage.
const AgentPath = "/.dockerbox/agent"
