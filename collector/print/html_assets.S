/* SPDX-License-Identifier: Apache-2.0
 *
 * html_assets.S: the template, the style and the script of the HTML page, NUL-terminated, and the digests by which the page's
 * own policy lets the style and the script in.
 */
	.section .rodata
	.globl html_template, html_style, html_script, html_style_digest, html_script_digest
html_template:
	.incbin "collector/print/html/page.html"
	.byte 0
html_style:
	.incbin "collector/print/html/page.css"
	.byte 0
html_script:
	.incbin "collector/print/html/page.js"
	.byte 0
html_style_digest:
	.incbin HTML_STYLE_DIGEST
	.byte 0
html_script_digest:
	.incbin HTML_SCRIPT_DIGEST
	.byte 0
	.section .note.GNU-stack, "", %progbits
