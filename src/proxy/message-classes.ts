import { IncomingMessage, ServerResponse } from 'node:http'

import type { Express } from 'express'

/** The classes that a server creates its messages from, as `createServer` takes them. */
export interface MessageClasses {
  readonly IncomingMessage: typeof IncomingMessage
  readonly ServerResponse: typeof ServerResponse
}

/**
 * Creates messages that have the prototypes of an Express application from the start. Express would set them on each request, and
 * V8 then gives both objects another map: that costs more than the rest of Express.
 */
export function createMessageClasses(app: Express): MessageClasses {
  class AppRequest extends IncomingMessage {}
  class AppResponse<Request extends IncomingMessage> extends ServerResponse<Request> {}
  Object.setPrototypeOf(AppRequest.prototype, app.request)
  Object.setPrototypeOf(AppResponse.prototype, app.response)
  Object.assign(app, { request: AppRequest.prototype, response: AppResponse.prototype })
  return { IncomingMessage: AppRequest, ServerResponse: AppResponse }
}
