/**
 * Limits error stacks to the usual number of frames plus some for the test runner. With the runner's hundred frames, decoders would spend
 * most of their time on stacks.
 */
Error.stackTraceLimit = 20
