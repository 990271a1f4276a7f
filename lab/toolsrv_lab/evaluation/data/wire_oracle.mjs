// Builds the requests of a list of cases with swagger-client, the library behind Swagger UI.
// Reads JSON on standard input, writes JSON: usage `node wire_oracle.mjs FOLDER`, where FOLDER is
// the one in which `npm install swagger-client` was run.
import { createRequire } from 'node:module'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const require = createRequire(join(process.argv[2], 'index.js'))
const name = require.resolve('swagger-client')
const { default: loaded } = await import(pathToFileURL(name).href)
const client = loaded.default ?? loaded
const requests = JSON.parse(readFileSync(0, 'utf8')).map((one) => {
  try {
    const { url, method, headers, body } = client.buildRequest({
      spec: one.document,
      operationId: 'operation',
      parameters: one.parameters,
      ...('body' in one ? { requestBody: one.body, requestContentType: one.media } : {}),
    })
    const text = body === undefined || typeof body === 'string' ? (body ?? '') : JSON.stringify(body)
    return { id: one.id, method, url, headers, body: text }
  } catch (error) {
    return { id: one.id, fault: String(error.message).slice(0, 200) }
  }
})
console.log(JSON.stringify(requests, null, 1))
