export { type RecordedExchange, recordedKindOf, toRecorded } from './exchange.ts'
export { createPseudonyms } from './pseudonyms.ts'
export {
  createRecordingTarget,
  openRecordingStore,
  type RecordFate,
  type RecordingStore,
  type RecordingTarget,
} from './recording-store.ts'
export { listRecordings, readRecording } from './recording-files.ts'
export { createRecordingSource } from './recording-source.ts'
