import type { Command } from 'commander'

import { addCompareLearn } from './compare-learn.ts'
import { addCompareReport } from './compare-report.ts'
import { addCompareRun } from './compare-run.ts'

/** Adds `compare run`, `report` and `learn`. */
export function addCompare(compare: Command, exitWith: (status: number) => void): void {
  addCompareRun(compare, exitWith)
  addCompareReport(compare, exitWith)
  addCompareLearn(compare, exitWith)
}
