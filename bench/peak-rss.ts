import { readFileSync, writeFileSync } from 'node:fs'
import { platform } from 'node:os'

/** Returns the largest resident size of this process in bytes: on Linux since `resetPeakRss`, elsewhere since the start. */
export function peakRss(): number {
  if (platform() !== 'linux') return process.resourceUsage().maxRSS * 1024
  const kib = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]
  return Number(kib) * 1024
}

/** Resets the peak to the present size (Linux, proc(5): 5 to clear_refs). Does nothing on other systems. */
export function resetPeakRss(): void {
  if (platform() === 'linux') writeFileSync('/proc/self/clear_refs', '5')
}
