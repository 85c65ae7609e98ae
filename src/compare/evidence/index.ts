export { createLiveEvidence, type LiveEvidence, type LiveEvidenceOptions } from './live-evidence.ts'
export { toFigures } from './to-figures.ts'
export { toRunDocument } from './to-run-document.ts'
