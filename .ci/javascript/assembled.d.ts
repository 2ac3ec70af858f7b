// Constants that laptsne.explorer.html_file puts before the modules of the widget.
declare const BODY: string;
declare const STYLE: string;
