import { takeCoverage } from 'node:v8'

import { afterAll } from 'vitest'

// The processes of the runner are ended without writing what they counted.
afterAll(() => takeCoverage())
