# fish completion of aclog. aclog completion fish > ~/.config/fish/completions/aclog.fish
function __aclog_complete
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    set -l current (string unescape -- $word; or string trim --left --chars=\'\" -- $word)
    set -l lines (env _ACLOG_COMPLETE=fish $words[1] $words[2..-1] "$current" 2>/dev/null)
    switch "$lines[1]"
        case files
            __fish_complete_path "$word"
        case directories
            __fish_complete_directories "$word" ''
        case words joined
            printf '%s\n' $lines[2..-1]
    end
end
complete --command aclog --no-files --arguments '(__aclog_complete)'
