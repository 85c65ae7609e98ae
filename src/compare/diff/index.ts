export { classOf } from './classes.ts'
export { compareMark, describeMark } from './compare-mark.ts'
export { comparePair, MAX_PAIR_ROWS, type Pair, type RecordDiff, withoutNoise } from './compare-pair.ts'
export { isServiceMember } from './compare-values.ts'
export {
  createOwnRules,
  type DatedRule,
  type OwnRules,
  type RuleCondition,
  Findings,
  plainly,
} from './findings.ts'
