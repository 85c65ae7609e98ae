import { readFileSync, writeFileSync } from 'node:fs'
import { platform } from 'node:os'

/** The largest resident size of this process so far, in bytes, since `resetPeakRss` where the system has it. */
export function peakRss(): number {
  if (platform() !== 'linux') return process.resourceUsage().maxRSS * 1024
  const kib = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]
  return Number(kib) * 1024
}

/** Lets the peak start again at the size of now (Linux, proc(5): 5 to clear_refs); elsewhere it does nothing. */
export function resetPeakRss(): void {
  if (platform() === 'linux') writeFileSync('/proc/self/clear_refs', '5')
}
