export {
  compareRecordings,
  type CompareRecordingsOptions,
  type RecordingsResult,
} from './compare-recordings.ts'
export type { Exchange, RecordedKind } from './exchange.ts'
export { createPseudonyms, type Pseudonyms } from './pseudonyms.ts'
export { createRecorder, type OfferedRecording, type RecordFate, type Recorder } from './recorder.ts'
export { beginInSlices } from './recording-work.ts'
export { createRecordingTarget, type RecordingTarget } from './recording-target.ts'
export { openRecordingStore, type RecordingStore } from './recording-store.ts'
export { listRecordings, readRecording, type ReadRecording } from './read-recordings.ts'
export { recordedKindOf, type WireExchange } from './to-exchange.ts'
export { createSpareTime } from './spare-time.ts'
export { SEALED } from './seal-file.ts'
