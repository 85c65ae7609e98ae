export { backgroundClock as systemClock, type WallClock as JournalClock } from '../../clock.ts'
