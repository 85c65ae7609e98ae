export {
  compareRecordings,
  type CompareRecordingsOptions,
  type RecordingsResult,
} from './compare-recordings.ts'
export type { Exchange, RecordedKind } from './exchange.ts'
export { createPseudonyms, type Pseudonyms } from './pseudonyms.ts'
export { createRecorder, type RecordFate, type Recorder } from './recorder.ts'
export { openRecordingStore, type RecordingStore } from './recording-store.ts'
export { listRecordings, readRecording, type ReadRecording } from './read-recordings.ts'
export { recordedKindOf, toExchange, type WireExchange } from './to-exchange.ts'
export { SEALED } from './seal-file.ts'
