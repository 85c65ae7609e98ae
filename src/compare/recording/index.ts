export { isGeneric, type RecordedExchange, recordedKindOf } from './exchange.ts'
export { createPseudonyms } from './pseudonyms.ts'
export {
  beginInSlices,
  beginInSpareTime,
  createRecorder,
  createRecordingTarget,
  type OfferedRecording,
  type RecordFate,
  type Recorder,
  type RecordingTarget,
} from './recorder.ts'
export { listRecordings, readRecording } from './recording-files.ts'
export { createRecordingSource } from './recording-source.ts'
export { openRecordingStore, type RecordingStore } from './recording-store.ts'
