// @ts-check
import { copyButton, element } from './dom.js';
import encodeQR from './qr.js';

const SVG = 'http://www.w3.org/2000/svg';
const QUIET_ZONE_COUNT = 3;

/**
 * A link with a button that copies it and a QR code.
 * @param {string} url
 * @param {string} name what the link opens, for screen readers
 */
export function linkView(url, name) {
  return element(
    'div',
    { class: 'link' },
    element(
      'div',
      {},
      element('code', { class: 'url' }, url),
      copyButton('Copy the link', () => url),
    ),
    qrCode(url, `QR code: ${name}`),
  );
}

/** @param {string} text @param {string} label */
function qrCode(text, label) {
  const rows = encodeQR(text, 'raw', { ecc: 'medium', border: QUIET_ZONE_COUNT });
  const path = rows.flatMap((row, y) => row.map((dark, x) => (dark ? `M${x} ${y}h1v1h-1z` : ''))).join('');
  const svg = document.createElementNS(SVG, 'svg');
  for (const [key, value] of Object.entries({
    viewBox: `0 0 ${rows.length} ${rows.length}`,
    role: 'img',
    'aria-label': label,
    class: 'qr',
    'shape-rendering': 'crispEdges',
  }))
    svg.setAttribute(key, value);
  const modules = document.createElementNS(SVG, 'path');
  modules.setAttribute('d', path);
  svg.append(modules);
  return svg;
}
