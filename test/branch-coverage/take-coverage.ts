import { takeCoverage } from 'node:v8'

import { afterAll, beforeAll, expect } from 'vitest'

import { keepCompiledCode } from '../support/keep-compiled-code.ts'

/**
 * The folder for coverage. V8 counts in this process from its start, but in a thread or program only if NODE_V8_COVERAGE is set when it
 * starts.
 */
const folder = process.env['MARKBRIDGE_COVERAGE']

/** The tests whose threads and programs are counted. The threads and programs of other tests start faster, from compiled code. */
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

// Writes the coverage after each file, because the test runner ends its processes before they could write the coverage themselves.
afterAll(() => takeCoverage())
