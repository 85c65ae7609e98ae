export { toEntry } from './to-entry.ts'
export { toFigures } from './to-figures.ts'
export { isCompared, toRunDocument } from './to-run-document.ts'
