import { setFlagsFromString } from 'node:v8'

/**
 * Makes V8 collect early and keep its space for new objects small: for a process that waits or only reads. Writes would take twice the
 * processor time (decision 001). Call it before the program is loaded: loading lets that space grow.
 */
export function startMemorySaver(): void {
  setFlagsFromString('--memory-saver-mode')
}

/** Lets V8 use the memory that it has; the space for new objects grows within a few collections. */
export function endMemorySaver(): void {
  setFlagsFromString('--no-memory-saver-mode')
}
