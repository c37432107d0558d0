/** The part of the package `qr` that the page uses. The build copies its file here (scripts/build.js). */
export default function encodeQR(text: string, output: 'raw', options: { ecc: 'medium'; border: number }): boolean[][];
