/** Errors with as many frames as outside of tests, and some for the runner: with its hundred, decoders spend their time on those. */
Error.stackTraceLimit = 20
