// @ts-check
import { connect } from 'node:net';

/** Headers that a server adds by itself, or that only one of the two servers can have. */
const IGNORED_HEADERS = new Set(['date', 'connection', 'keep-alive', 'www-authenticate']);

/**
 * Checks that the floor does the same work: its responses have the same headers and fields as those of the service.
 *
 * @param {import('./routes.js').Route} route
 * @param {import('./server.js').Server} floor @param {import('./server.js').Server} service
 * @throws Error with both responses if they differ
 */
export async function assertSameResponses({ name, requests, management }, floor, service) {
  const [first = '', second = first] = requests();
  const port = management ? service.managementPort : service.port;
  const ofFloor = shapeOf(await responseTo(floor.port, first));
  const ofService = shapeOf(await responseTo(port, second));
  if (ofFloor !== ofService) throw new Error(`${name}: the floor responds\n${ofFloor}\nand the service\n${ofService}`);
}

/** @param {number} port @param {string} request @returns {Promise<string>} */
function responseTo(port, request) {
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = connect(port, '127.0.0.1', () => socket.write(request.replace('\r\n', '\r\nConnection: close\r\n')));
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
    });
    socket.once('end', () => resolve(text));
    socket.once('error', reject);
  });
}

/** The status of a response, and the names of its headers and fields. @param {string} response */
function shapeOf(response) {
  const [head = '', body = ''] = response.split('\r\n\r\n');
  const [status, ...lines] = head.split('\r\n');
  const names = lines
    .map((line) => line.split(':', 1)[0]?.toLowerCase() ?? '')
    .filter((name) => !IGNORED_HEADERS.has(name));
  return [status, names.sort().join(), Object.keys(JSON.parse(body)).sort().join()].join('\n');
}
