import { takeCoverage } from 'node:v8'

import { afterAll, beforeAll, expect } from 'vitest'

import { keepCompiledCode } from '../support/keep-compiled-code.ts'

/** V8 counts in this process since its start, whatever is set later; threads and programs go by what is set when they start. */
const folder = process.env['MARKBRIDGE_COVERAGE']

/** What shows threads and programs at work. The others start them faster, from compiled code. */
const ofPrograms = /\/test\/(?:simulation|journal\/(?:damaged-sqlite|sqlite-failures|processes))[./]/

beforeAll(() => {
  if (ofPrograms.test(expect.getState().testPath ?? '')) {
    process.env['NODE_V8_COVERAGE'] = folder
    delete process.env['NODE_COMPILE_CACHE']
  } else {
    delete process.env['NODE_V8_COVERAGE']
    keepCompiledCode()
  }
})

// The processes of the runner are ended without writing what they counted.
afterAll(() => takeCoverage())
