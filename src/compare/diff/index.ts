export { classOf, codeClassOf, type CodeClass } from './classes.ts'
export { compareMark } from './compare-mark.ts'
export { describeMark, type MarkDescription } from './describe-mark.ts'
export { diffMarks } from './diff-marks.ts'
export { diffRegistrations } from './diff-registrations.ts'
export type { RecordDiff } from './diff-rows.ts'
export { OTHER_NAME, ROW_PATH } from './known-names.ts'
export { type DiffOptions, MAX_WINDOW_ROWS, type RowOrder } from './options.ts'
export {
  createOwnRules,
  type DatedRule,
  type OwnRules,
  type PartnerRule,
  type RuleCondition,
} from './own-rules.ts'
export { withoutNoise } from './without-noise.ts'
