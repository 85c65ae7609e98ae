export { createUnmarkedCodes } from './unmarked-codes.ts'
