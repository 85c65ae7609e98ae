import { setFlagsFromString } from 'node:v8'

/**
 * Makes V8 collect early and keep its space for new objects small. For a process that waits or reads; where writes wait for their
 * outcomes it would take twice the processor time (decision 001). To be called before the program is loaded, or that space has grown.
 */
export function startMemorySaver(): void {
  setFlagsFromString('--memory-saver-mode')
}

/** Lets V8 use the memory that it has; the space for new objects grows within a few collections. */
export function endMemorySaver(): void {
  setFlagsFromString('--no-memory-saver-mode')
}
